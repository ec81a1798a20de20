"""Training in five calls: the job, its optimizer and replica, samples and schedules."""
